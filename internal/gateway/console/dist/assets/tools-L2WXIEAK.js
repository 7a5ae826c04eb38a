/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-LHEQTILN.js";import"./chunk-7SH2KXTJ.js";import"./chunk-K24UDU2N.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
