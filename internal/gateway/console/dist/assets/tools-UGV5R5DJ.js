/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-DQNEBACU.js";import"./chunk-I5JZN7FM.js";import"./chunk-OL5XJZGW.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
