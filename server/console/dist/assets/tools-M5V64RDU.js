/* Licences of the libraries in this file: NOTICE.txt */
import{a,b}from"./chunk-J5TKJL7G.js";import"./chunk-ZBMQ6UFX.js";import"./chunk-SJQVAKVA.js";import"./chunk-IMV4EARU.js";export{b as default,a as verdict};
