/* Licences of the libraries in this file: NOTICE.txt */
import{a,b}from"./chunk-CRYRP2YX.js";import"./chunk-SCAROFSO.js";import"./chunk-HYAX4NYF.js";import"./chunk-5FCUUUAC.js";export{b as default,a as verdict};
